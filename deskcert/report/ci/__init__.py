"""What a verdict becomes for the programs of a pipeline: JUnit, SARIF, CTRF, annotations, a step's summary, a badge."""
