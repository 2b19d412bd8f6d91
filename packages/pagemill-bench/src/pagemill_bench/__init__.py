"""What ``pagemill bench`` and ``pagemill profile`` measure on a user's own machine, and what tests of engines need."""
