"""The federation on NVFlare: each client a process of its own, with a certificate of its own, on its own machine.

client and server are what NVFlare makes in its job processes; kits, processes, jobs and carried are this side's: how
certificates are made, processes started and ended, a run submitted, and its history brought back.
"""
