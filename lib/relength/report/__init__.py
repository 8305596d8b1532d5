"""Tables, figures, passages and the scoreboard: everything that is made from the store alone."""
