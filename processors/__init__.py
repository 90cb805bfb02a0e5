if __name__ == "processors":
    raise ImportError("import vlrl.processors, not processors: this folder is the package vlrl.processors")
