"""Where a trial runs: in the guest kernel (virtual time, no root) or on the host's own."""
