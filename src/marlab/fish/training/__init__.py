"""Training a shoal: settings, the parts made from them, the trainer and what it leaves behind."""
