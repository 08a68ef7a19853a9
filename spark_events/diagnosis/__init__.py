"""Why an application is slow: rules over what its stages measured, each with what it cost and what to do."""
