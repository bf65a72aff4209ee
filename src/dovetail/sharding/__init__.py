"""Blocks in shards that no process holds all at once: each shard is stated, priced and checked in its own
process."""
