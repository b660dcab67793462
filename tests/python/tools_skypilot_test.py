"""`ganymede export skypilot`, read by SkyPilot's own parser and placed by its own optimizer.

SkyPilot fetches its catalogs from the network; here it finds one of three machines in their format, and AWS counts as
enabled. `sky launch --dryrun` goes on to ask the cloud for images and buckets, which needs an account; the tests end with
what the optimizer has chosen.
"""
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from support import need_tool, program, request, scenario

need_tool("sky", "skypilot")
HOME = tempfile.TemporaryDirectory()
os.environ.update(HOME=HOME.name, SKYPILOT_DISABLE_USAGE_COLLECTION="1")
VMS = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,Arch
p3.2xlarge,V100,1.0,8.0,61.0,"{}",3.06,0.9,us-east-1,us-east-1a,x86_64
p3.8xlarge,V100,4.0,32.0,244.0,"{}",12.24,3.6,us-east-1,us-east-1a,x86_64
p4d.24xlarge,A100,8.0,96.0,1152.0,"{}",21.96,6.5,us-east-1,us-east-1a,x86_64
"""
COMMON = {"accelerators": "AcceleratorName,Clouds,Regions\nV100,AWS,us-east-1\nA100,AWS,us-east-1\n",
          "metadata": "GPU,MemoryMB,Manufacturer\nV100,16384,NVIDIA\nA100,40960,NVIDIA\n"}
import sky  # noqa: E402
import sky.catalog.common  # noqa: E402
import sky.check  # noqa: E402
from sky import clouds  # noqa: E402
from sky.utils import registry  # noqa: E402


class SkyPilot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name, text in {"aws/vms": VMS, **{f"common/{name}": text for name, text in COMMON.items()}}.items():
            path = pathlib.Path(sky.catalog.common.get_catalog_path(f"{name}.csv"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def task(self, content, command, *options):
        """What SkyPilot reads of the exported task, checked by it."""
        given, made, file = (self.folder / name for name in ("given.json", "made.json", "task.yaml"))
        given.write_text(json.dumps(content))
        program(command, given, "--format", "json", "--quiet", "-o", made)
        program("export", "skypilot", made, "-o", file, *options)
        task = sky.Task.from_yaml(str(file))
        task.validate(skip_file_mounts=True)
        return task

    def placed(self, task):
        """The resources that SkyPilot's optimizer would launch."""
        task.storage_mounts = {}  # buckets are made even in a dry run
        dag = sky.Dag()
        dag.add(task)
        with mock.patch.object(sky.check, "get_cached_enabled_clouds_or_refresh", lambda *_, **__: [clouds.AWS()]), \
                mock.patch.object(clouds.AWS, "check_features_are_supported", lambda *_, **__: None):
            sky.optimizer.Optimizer.optimize(dag, quiet=True)
        return task.best_resources

    def test_a_plan_is_placed_where_it_was_simulated(self):
        wanted = request()
        wanted["search"]["markets"] = ["on-demand"]
        task = self.task(wanted, "plan", "--image", "registry/ganymede:1")
        self.assertEqual(task.num_nodes, 1)
        self.assertEqual(task.envs["MODEL"], "dcgan-64")
        self.assertEqual(list(task.storage_mounts), [task.envs["CHECKPOINT_DIR"]])
        self.assertIn("ganymede", task.run)
        best = self.placed(task)
        self.assertEqual((best.instance_type, best.region, best.accelerators), ("p3.2xlarge", "us-east-1", {"V100": 1}))
        self.assertFalse(best.use_spot)
        self.assertEqual(best.extract_docker_image(), "registry/ganymede:1")

    def test_spot_nodes_of_a_result(self):
        platform = {"catalog": "aws", "region": "us-east-1", "instance": "p4d.24xlarge", "nodes": 2, "market": "spot"}
        task = self.task(scenario(platform=platform), "simulate", "--command", "torchrun train.py", "--setup", "true")
        self.assertEqual((task.num_nodes, task.workdir), (2, os.getcwd()))
        self.assertIn("torchrun train.py", [*task.envs.values(), task.run])
        best = self.placed(task)
        self.assertEqual((best.instance_type, best.accelerators, best.use_spot), ("p4d.24xlarge", {"A100": 8}, True))
        self.assertEqual(best.job_recovery["strategy"], "FAILOVER")

    def test_all_gpus_of_a_node_are_asked_for(self):
        platform = {"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "gpus_per_node": 2}
        task = self.task(scenario(platform=platform), "simulate", "--image", "registry/ganymede:1")
        best = self.placed(task)
        self.assertEqual((best.instance_type, best.accelerators), ("p3.8xlarge", {"V100": 4}))

    def test_a_task_asks_for_nothing_that_its_cloud_refuses(self):
        machines = {"ibm": ("gx2-8x64x1v100", "V100"), "oci": ("BM.GPU4.8", "A100"), "verda": ("1H100.80S.32V", "H100"),
                    "runpod": ("1x_H100_SECURE", "H100"), "vast": ("1x-RTX_4090-32-65536", "RTX4090"),
                    "lambda": ("gpu_1x_h100_sxm5", "H100")}
        for provider, (instance, gpu) in machines.items():
            with self.subTest(provider):
                path = pathlib.Path(sky.catalog.common.get_catalog_path(f"{provider}/vms.csv"))
                path.parent.mkdir(parents=True, exist_ok=True)
                rows = json.loads(program("catalog", "--provider", provider, "--instance", instance, "--market", "on-demand",
                                          "--format", "json"))
                places = sorted({row["region"] for row in rows})
                path.write_text("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,"
                                "SpotPrice,AvailabilityZone\n" + "".join(
                                    f'{instance},{gpu},1,8,64,2,"{region}",,1,"{region}"\n' for region in places))
                platform = {"catalog": provider, "instance": instance, "region": places[0]}
                task = self.task(scenario(platform=platform), "simulate")
                cloud = registry.CLOUD_REGISTRY.from_str(provider)
                for resources in task.resources:
                    asked = task.get_required_cloud_features() | resources.get_required_cloud_features()
                    self.assertEqual(asked & set(cloud._unsupported_features_for_resources(resources)), set())


if __name__ == "__main__":
    unittest.main()
