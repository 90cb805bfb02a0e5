import pytest
from digit_run import write_run


@pytest.fixture
def run_dir(tmp_path):
    """The folder of a run that learned the digits."""
    write_run(tmp_path / "digits")
    return tmp_path / "digits"
