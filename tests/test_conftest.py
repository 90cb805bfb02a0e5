"""The guards in conftest.py and no_network/ do guard."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from scheduling import SHARED_RAY, LongestFirst, scope_of

pytest_plugins = ["pytester"]


def test_another_machine_is_out_of_reach() -> None:
    with socket.socket() as outside, pytest.raises(OSError, match=r"no network.*192\.0\.2\.1 port 80"):
        outside.connect(("192.0.2.1", 80))  # TEST-NET-1: routed nowhere, should the guard be broken
    with pytest.raises(OSError, match=r"no network.*for vlrl\.invalid"):
        socket.getaddrinfo("vlrl.invalid", 443)


def test_a_child_process_is_guarded_too() -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 1
    assert "tests use no network" in child.stderr


def test_this_machine_is_in_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=5).close()


def test_only_a_gpu_test_may_be_skipped(pytester: pytest.Pytester, root: Path) -> None:
    pytester.makeconftest(
        (root / "tests" / "conftest.py")
        .read_text()
        .replace("Path(__file__).parent", f"Path({str(root / 'tests')!r})")
    )
    pytester.makeini("[pytest]\nmarkers =\n    gpu: x\n    slow: x\n")
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.gpu
        def test_on_gpu():
            pytest.skip("no GPU here")
        def test_lazy():
            pytest.skip("did not feel like it")
        @pytest.mark.slow
        def test_long():
            pass
        def test_short():
            pass
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(skipped=1, failed=1, passed=1, deselected=1)
    pytester.runpytest_subprocess("-m", "slow").assert_outcomes(passed=1, deselected=3)


def test_a_hang_that_no_signal_ends_ends_the_session_with_its_stack(
    pytester: pytest.Pytester, root: Path
) -> None:
    """pytest-timeout's signal asks the main thread to raise; what cannot would hang till CI is killed."""
    own = (root / "pyproject.toml").read_text()
    assert "faulthandler_timeout = 900\nfaulthandler_exit_on_timeout = true\n" in own
    pytester.makeini("[pytest]\nfaulthandler_exit_on_timeout = true\n")
    pytester.makepyfile(
        """
        import signal, time
        def test_deaf():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            time.sleep(60)
        """
    )
    result = pytester.runpytest_subprocess("--timeout=0.5", "-o", "faulthandler_timeout=2", timeout=50)
    assert result.ret == 1
    result.stderr.fnmatch_lines(["Timeout *!", "*in test_deaf"])


def test_one_worker_runs_all_that_shares_a_ray_and_begins_with_it(request: pytest.FixtureRequest) -> None:
    shares = {
        item.nodeid for item in request.session.items if "local_ray" in getattr(item, "fixturenames", ())
    }
    assert all(scope_of(test) == SHARED_RAY for test in shares)
    assert scope_of("tests/test_laws.py::test_all[a::b]") == "tests/test_laws.py"
    work = LongestFirst()
    for scope in ("many", SHARED_RAY, "few"):
        work[scope] = {}
    assert list(work) == [SHARED_RAY, "many", "few"]
