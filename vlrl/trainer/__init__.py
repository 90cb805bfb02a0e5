"""DeepSpeed ZeRO-3 in Ray actors: the driver, its ranks, their model, memory and time."""
