"""A feature that is off leaves no trace: a job that names a key with its default gives the bytes of the job that never
named it, for every key of the schema that has a default."""

import itertools
import json
import pathlib
import tempfile
import unittest

import keys
from rotation import in_turn


def contexts(key):
    """Jobs in which a key may make sense: each base, with each name that its group can have."""
    group = key.split(".")[0]
    names = keys.by_type("", keys.target(keys.SCHEMA["properties"][group]).get("properties", {}).get("name", {}))
    for base, name in itertools.product(keys.BASES.values(), names or [None]):
        own = {f"{group}.name": name} if name else {}
        yield {**base, **keys.companions(key, None), **keys.companions(f"{group}.name", name), **own}


class Absent(unittest.TestCase):
    def test_defaults_leave_no_trace(self):
        defaults = {key: schema["default"] for key, schema in keys.leaves() if "default" in schema}
        self.assertGreater(len(defaults), 20)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            keys.write_data(folder)
            self.programs = {}
            for key, default in in_turn(defaults.items(), 2):
                with self.subTest(key=key):
                    self.check(key, default, folder)

    def program(self, job, folder):
        """The program of a job, which is that of many keys that it does not name; or its refusal."""
        text = json.dumps(job, sort_keys=True)
        if text not in self.programs:
            self.programs[text] = keys.generate(job, folder)
        return self.programs[text]

    def check(self, key, default, folder):
        for job in contexts(key):
            job = {name: value for name, value in job.items() if name != key}
            never = self.program(job, folder)
            default = keys.default_of(job, key, default)
            named = keys.generate({**job, key: default}, folder)
            if isinstance(never, str) and isinstance(named, str):
                self.assertEqual(never, named, f"{key}: {default} changes the program")
                return
        self.fail(f"no job of contexts() takes {key}: {default}")


if __name__ == "__main__":
    unittest.main()
