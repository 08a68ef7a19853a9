"""The rules about what SQL executions compute again although they, or others, have computed it."""
