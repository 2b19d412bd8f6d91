"""The data model: labels, regions, pages, documents and errors as data. Imports nothing else of pagemill."""
