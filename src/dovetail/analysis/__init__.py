"""What is learnt about a problem before a method starts; nothing is rewritten here."""
