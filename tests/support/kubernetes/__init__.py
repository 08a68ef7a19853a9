"""A real API server of Kubernetes, with a stand-in for its nodes that runs pods as processes of this machine."""
