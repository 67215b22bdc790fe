"""Every frame of the wire protocol, and the pure rules that clients and server share."""
