"""Pictures of results and of whole indexes. All but the projection need matplotlib, an extra."""
