"""Rows of a label and its value on recognised pages: goods and prices, titles and page numbers, fields of forms.

Layout models take labels and values for columns of text.
"""
