"""What tests, benches and the applications of tests share."""
