"""The conversation log: numbered entries, cursors, group commit, retention."""
