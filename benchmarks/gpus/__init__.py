"""What `benchmarks.gpu` measures, stage by stage."""
