"""Building blocks of claims: samples, contrasts, parts, answers, references."""
