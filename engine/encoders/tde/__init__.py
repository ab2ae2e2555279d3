"""TDE: sentence states beside topics."""
