"""The one config tree: YAML plus dotted overrides, checked before anything heavy is imported."""

from vlrl.config.load import Config, field_paths, load_config, parse_config

__all__ = ["Config", "field_paths", "load_config", "parse_config"]
