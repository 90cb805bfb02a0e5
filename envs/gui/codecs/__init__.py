"""Texts of models to actions and back: one file a grammar. See `vlrl.envs.gui.codecs.codec`."""
