<?php // never run
