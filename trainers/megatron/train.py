"""Starts job.py, which imports Megatron: so a process that Megatron starts to keep a queue does not import it once more."""
if __name__ == "__main__":
    import job
    job.main()
