"""Makes a joint release over a network, each client on its own machine.

It stands above `federation`, which carries messages, and above `synthesis`, which plans releases and
fits generators. Neither of them knows of the other.

joint_run    which release it is, and what all sides must have alike
member       a client's part: its ledger, its vectors and its store
coordinator  the server's part: one secure sum after the other
client       the client's side of all NVFlare jobs
server       the server's side of all NVFlare jobs
__main__     the submitter's command
"""
