"""Tables: from pixels and text lines to rows, columns and spans, and to and from HTML."""
