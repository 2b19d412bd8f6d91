"""Model servers that actors start on a cluster: one for each place, restarted when they die, gone with the cluster."""

import asyncio

import pytest
from pagemill_process import PATIENCE_S
from ray_cluster_nodes import SmallCluster, needs_ray
from serving_world import World, is_healthy

from pagemill.cluster.servers import ClusterServers
from pagemill.config.serving import ServingOptions
from pagemill.errors import ServerError, UsageError
from pagemill.serving.spec import What

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_ray]


def options(world, replicas):
    return ServingOptions(vllm=str(world.program), profile="l4", logs=world.log.parent, replicas=replicas)


async def test_one_server_for_each_place(tmp_path):
    import ray

    world = World(tmp_path)
    try:
        with SmallCluster(2, world.environment(), gpus=1) as cluster:
            with pytest.raises(UsageError, match="the cluster has 2"):
                async with ClusterServers(options(world, "3"), cluster.address, report=world.report):
                    pass
            async with ClusterServers(options(world, "auto"), cluster.address, report=world.report) as servers:
                free = {}  # servers leave all CPUs to the workers
                async with asyncio.timeout(PATIENCE_S):
                    while "GPU" in free or not free:  # the view of the cluster is some time behind
                        free = await asyncio.to_thread(ray.available_resources)
                        await asyncio.sleep(0.1)
                assert free["CPU"] == 2
                assert len(set(servers.urls)) == 2 and servers.ready
                assert all([await is_healthy(url) for url in servers.urls])
                assert sum(event.what is What.READY for event in world.events) == 2
                waiting = asyncio.create_task(servers.wait())
                for _ in range(2):
                    assert not waiting.done()
                    assert cluster.kill_actor(b"ray::ServerActor")
                with pytest.raises(ServerError, match="gone"):
                    await asyncio.wait_for(waiting, PATIENCE_S)
    finally:
        world.clear()
