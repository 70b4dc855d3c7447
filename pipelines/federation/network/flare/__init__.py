"""The federation on NVFlare: each client a process of its own, with a certificate of its own, on its own machine.

client, server            what NVFlare makes in its job processes; engine: the server's messages, and who is lost
launcher, worker          how a client starts a job process; hardening, deployer: what it answers, and takes for a job
server_launcher, server_worker    the same at the server; origins: whose name a message may bear there
kits, processes           how certificates are made, processes started and ended; logs: others' text in a log
jobs, submit              how a run is submitted, and its history brought back
names                     what both ends call by name
"""
