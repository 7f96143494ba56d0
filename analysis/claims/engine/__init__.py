"""What every claim is made of: samples, contrasts, parts, answers, references."""
