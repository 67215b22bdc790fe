"""The provider for Chat Completions APIs: what is asked, and what answers mean."""
