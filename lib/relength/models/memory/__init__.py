"""Networks with an external memory."""
