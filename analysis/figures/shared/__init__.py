"""What figures are drawn with: style, panels and plots that several experiments share."""
