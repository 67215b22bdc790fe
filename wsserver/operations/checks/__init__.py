"""What `config check` and `doctor` look at: settings, store, upstream, machine, URL."""
