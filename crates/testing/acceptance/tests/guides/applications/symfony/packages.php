<?php

/** Debian's packages of Symfony, which have an autoloader each. */

declare(strict_types=1);

foreach (['Bundle/FrameworkBundle', 'Bundle/SecurityBundle', 'Bundle/TwigBundle', 'Component/Console', 'Component/Yaml'] as $package) {
    require "Symfony/$package/autoload.php";
}
