"""The runner, which obeys a trial's programme, and what the host writes and reads of one."""
