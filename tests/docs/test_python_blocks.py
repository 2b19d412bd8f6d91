"""Python in the documentation is valid, and imports names of pagemill that exist."""

import ast
import importlib

from markdown_pages import PAGES, blocks, name


def test_python_blocks_compile_and_import_what_exists():
    for page, block in ((name(each), block) for each in PAGES for block in blocks(each)):
        if block.language != "python":
            continue
        compile(block.code, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pagemill"):
                if (node.module or "").startswith("pagemill.integrations"):  # their own tests import the frameworks
                    continue
                module = importlib.import_module(node.module or "")
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pagemill":
                assert hasattr(importlib.import_module("pagemill"), node.attr), node.attr
