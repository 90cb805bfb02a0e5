"""The Ray adapter: a cluster, the run's place in it, and calls of its actors."""

from vlrl.cluster.calls import (
    begin,
    begin_with,
    call,
    dead,
    fetch,
    fetch_all,
    fetch_async,
    fetch_many,
    logs_folder,
    put,
    split,
    stop,
    stream,
    translate,
)
from vlrl.cluster.node_checks import check_nodes
from vlrl.cluster.node_monitor import NodeMonitor
from vlrl.cluster.processes import Output, Process, Processes, reachable
from vlrl.cluster.reservation import (
    Place,
    Reservation,
    driver_place,
    fetch_from,
    meeting_point,
    nodes,
    run_on,
    spawn,
)
from vlrl.cluster.session import cluster, device_name, gpu_available
from vlrl.cluster.versions import check_versions

__all__ = [
    "NodeMonitor",
    "Output",
    "Place",
    "Process",
    "Processes",
    "Reservation",
    "begin",
    "begin_with",
    "call",
    "check_nodes",
    "check_versions",
    "cluster",
    "dead",
    "device_name",
    "driver_place",
    "fetch",
    "fetch_all",
    "fetch_async",
    "fetch_from",
    "fetch_many",
    "gpu_available",
    "logs_folder",
    "meeting_point",
    "nodes",
    "put",
    "reachable",
    "run_on",
    "spawn",
    "split",
    "stop",
    "stream",
    "translate",
]
