"""`ganymede export kubernetes`, read by the models of the Kubernetes client: nothing is unknown to them or lost."""
import json
import pathlib
import tempfile
import types
import unittest

from support import need_tool, program, request, scenario, study

need_tool("kubernetes")
need_tool("yaml", "pyyaml")
import yaml  # noqa: E402
from kubernetes import client  # noqa: E402

API = client.ApiClient()


def model_of(document, kind):
    """The model of what the client would have received from a cluster."""
    text = json.dumps(document)
    try:
        return API.deserialize(text, kind, "application/json")
    except TypeError:  # before version 32
        return API.deserialize(types.SimpleNamespace(data=text), kind)


def lost(before, after, path=""):
    """What `before` has and `after` has not: a model drops fields that it does not know."""
    if isinstance(before, dict):
        for key, value in before.items():
            if key not in (after or {}):
                yield f"{path}/{key}"
            else:
                yield from lost(value, after[key], f"{path}/{key}")
    elif isinstance(before, list):
        for i, value in enumerate(before):
            yield from lost(value, after[i], f"{path}/{i}")
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"


class Kubernetes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def exported(self, content, command, *options):
        """The models of the manifests by their kinds."""
        file = self.folder / "given.json"
        file.write_text(json.dumps(content))
        if command:
            program(command, file, "--format", "json", "--quiet", "-o", self.folder / "made.json")
            file = self.folder / "made.json"
        manifests = self.folder / "manifests.yaml"
        program("export", "kubernetes", file, "--image", "registry/ganymede:1", "-o", manifests, *options)
        found = {}
        for document in yaml.safe_load_all(manifests.read_text()):
            found[document["kind"], document["metadata"]["name"]] = self.checked(document)
        return found

    def checked(self, document):
        if document["kind"] == "JobSet":  # a resource of its own, whose parts are Kubernetes'
            self.assertEqual(document["apiVersion"], "jobset.x-k8s.io/v1alpha2")
            parts = [(part["template"], "V1JobTemplateSpec") for part in document["spec"]["replicatedJobs"]]
        else:
            version = "V2" if document["kind"] == "HorizontalPodAutoscaler" else "V1"
            parts = [(document, version + document["kind"])]
        models = [model_of(part, kind) for part, kind in parts]
        for (part, _), model in zip(parts, models):
            self.assertEqual(list(lost(part, API.sanitize_for_serialization(model))), [])
        return models[0]

    def pod_of(self, job):
        pod = job.spec.template.spec
        container, = pod.containers
        return pod, container

    def test_a_plan_on_one_node(self):
        found = self.exported(request(), "plan")
        self.assertEqual(sorted(kind for kind, _ in found),
                         ["ConfigMap", "Deployment", "Job", "PersistentVolumeClaim", "Service", "Service"])
        job, = [model for (kind, _), model in found.items() if kind == "Job"]
        pod, container = self.pod_of(job)
        self.assertEqual((container.image, container.resources.limits["nvidia.com/gpu"]), ("registry/ganymede:1", "1"))
        self.assertIsInstance(job.spec, client.V1JobSpec)
        for volume in pod.volumes:  # what a pod mounts is in the same file, or no object
            for kind, source in (("PersistentVolumeClaim", volume.persistent_volume_claim),
                                 ("ConfigMap", volume.config_map)):
                if source is not None:
                    self.assertIn((kind, getattr(source, "claim_name", None) or source.name), found)
        mounted = {mount.name for mount in container.volume_mounts}
        self.assertEqual(mounted - {volume.name for volume in pod.volumes}, set())

    def test_services_select_the_pods(self):
        found = self.exported(request(), "plan")
        # Kubernetes itself labels the pods of a Job with its name.
        pods = [{"job-name": name, **(model.spec.template.metadata.labels or {})}
                for (kind, name), model in found.items() if kind in ("Job", "Deployment")]
        selectors = [model.spec.selector for (kind, _), model in found.items() if kind == "Service"]
        self.assertEqual(len(selectors), 2)
        for selector in selectors:
            self.assertEqual(len([labels for labels in pods if selector.items() <= labels.items()]), 1, selector)

    def test_several_nodes_as_a_job_and_as_a_job_set(self):
        platform = {"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "nodes": 3}
        for kind in ("job", "jobset"):
            for command in ((), ("--command", "python train.py --workers $NUM_NODES")):
                found = self.exported(scenario(platform=platform), "simulate", "--kind", kind, *command)
                job, = [model for (of, _), model in found.items() if of in ("Job", "JobSet")]
                self.assertEqual((job.spec.completions, job.spec.parallelism, job.spec.completion_mode), (3, 3, "Indexed"))
                self.assertEqual(self.pod_of(job)[1].resources.limits["nvidia.com/gpu"], "4")

    def test_a_sweep_in_shards(self):
        found = self.exported(study(), None, "--sweep", "--shards", 5, "--cpus", 2)
        job, = [model for (kind, _), model in found.items() if kind == "Job"]
        self.assertEqual((job.spec.completions, job.spec.completion_mode), (5, "Indexed"))
        self.assertEqual(self.pod_of(job)[1].resources.requests["cpu"], "2")
        config, = [model for (kind, _), model in found.items() if kind == "ConfigMap"]
        self.assertIn(study(), [json.loads(text) for name, text in config.data.items() if name.endswith(".json")])

    def test_a_service(self):
        service = {"schema": "ganymede.service/1", "generator": {"measured": {"1": "5ms"}}, "arrivals": {"per_second": 5},
                   "platform": {"catalog": "aws", "region": "us-east-1", "instance": "g4dn.xlarge", "nodes": 2},
                   "autoscaling": {"min": 1, "max": 3, "utilization": 0.5}}
        found = self.exported(service, None)
        self.assertEqual(sorted(kind for kind, _ in found),
                         ["Deployment", "HorizontalPodAutoscaler", "PersistentVolumeClaim", "Service"])
        models = {kind: model for (kind, _), model in found.items()}
        self.assertEqual(models["Deployment"].spec.replicas, 2)
        self.assertTrue(models["Service"].spec.selector.items() <=
                        models["Deployment"].spec.template.metadata.labels.items())
        scaler = models["HorizontalPodAutoscaler"].spec
        self.assertEqual((scaler.min_replicas, scaler.max_replicas, scaler.scale_target_ref.name),
                         (1, 3, models["Deployment"].metadata.name))

    def test_a_field_that_no_model_knows_would_be_found(self):
        job = {"kind": "Job", "metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [], "nodeNames": "b"}}}}
        with self.assertRaises(AssertionError) as caught:
            self.checked(job)
        self.assertIn("/spec/template/spec/nodeNames", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
