"""An editor of programs: a project's files, tabs, a list of problems."""
