if __name__ == "envs":
    raise ImportError("import vlrl.envs, not envs: this folder is the package vlrl.envs")
