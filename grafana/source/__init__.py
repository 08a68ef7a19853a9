"""The dashboards' source: ``python -m grafana.source`` writes them as JSON into grafana/dashboards."""
