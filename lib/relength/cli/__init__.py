"""The command `relength`: one file per group of commands."""
