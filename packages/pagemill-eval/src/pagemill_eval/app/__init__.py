"""What the commands do, without their command line."""
