"""Where logs are kept: drivers behind the `Store` protocol of `wsserver.log`."""
