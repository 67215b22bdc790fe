"""From the settings to what each room is given; `wsserver.server` puts it together."""
