"""Document readers: Office, HWP, web and text files to finished pages, without pixels."""
