"""Implementation of the commands, without their command line."""
