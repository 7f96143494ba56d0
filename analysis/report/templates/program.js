liveFigures();
