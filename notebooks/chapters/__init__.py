"""What one chapter alone needs; each module begins with its chapter's number."""
