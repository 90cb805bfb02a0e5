"""The widgets of a desktop: what its apps tell over AT-SPI, by D-Bus."""
