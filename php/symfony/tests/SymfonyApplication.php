<?php

/**
 * A whole application of Symfony in the process, with the bundles that Debian has: FrameworkBundle, SecurityBundle,
 * TwigBundle and WebProfilerBundle, for Symfony 5.4 to 7.4. Members are known by HTTP's basic authentication.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Attribute\Uses;
use Pagewell\Symfony\PagewellBundle;
use Symfony\Bundle\FrameworkBundle\Console\Application;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\SecurityBundle\SecurityBundle;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Bundle\WebProfilerBundle\WebProfilerBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;
use Symfony\Component\Security\Core\User\InMemoryUser;
use Twig\Environment;

use function Pagewell\changed;

final class SymfonyApplication extends Kernel
{
    use MicroKernelTrait;

    private readonly string $directory;

    /** @param string $directory of an application that several processes share, without the profiler; by default a new one */
    public function __construct(string $directory = '')
    {
        $this->directory = $directory ?: sys_get_temp_dir() . '/pagewell-symfony-' . bin2hex(random_bytes(6));
        is_dir("$this->directory/templates") || mkdir("$this->directory/templates", 0700, true);
        file_put_contents("$this->directory/templates/page.html.twig", "<html><body>{% do pagewell_uses('comments') %}page</body></html>");
        parent::__construct('test', $directory === '');
    }

    public function ask(Request $request): Response
    {
        $response = $this->handle($request);
        $this->terminate($request, $response);
        return $response;
    }

    public function console(): Application
    {
        $console = new Application($this);
        $console->setAutoExit(false);
        return $console;
    }

    /** Ends it, with its directory. */
    public function stop(): void
    {
        $this->shutdown();
        $left = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($this->directory, \FilesystemIterator::SKIP_DOTS), \RecursiveIteratorIterator::CHILD_FIRST);
        foreach ($left as $file) {
            $file->isDir() ? rmdir((string) $file) : unlink((string) $file);
        }
        rmdir($this->directory);
    }

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new SecurityBundle(), new TwigBundle(), new WebProfilerBundle(), new PagewellBundle()];
    }

    public function getProjectDir(): string
    {
        return $this->directory;
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 's', 'test' => true, 'http_method_override' => false, 'router' => ['utf8' => true],
            'profiler' => ['collect' => $this->debug],
            'messenger' => ['transports' => ['later' => 'in-memory://'], 'routing' => [SymfonyMessage::class => 'later']],
        ]);
        $container->extension('web_profiler', ['toolbar' => $this->debug]);
        $container->extension('twig', ['strict_variables' => true, 'default_path' => '%kernel.project_dir%/templates']);
        $container->extension('security', (self::VERSION_ID < 60000 ? ['enable_authenticator_manager' => true] : []) + [
            'password_hashers' => [InMemoryUser::class => 'plaintext'],
            'providers' => ['members' => ['memory' => ['users' => ['ada' => ['password' => 'a']]]]],
            'firewalls' => ['main' => ['stateless' => true, 'provider' => 'members', 'http_basic' => null]],
        ]);
        $services = $container->services()->defaults()->autowire()->autoconfigure();
        $services->set(SymfonySite::class)->tag('controller.service_arguments');
        $services->set(SymfonyHandler::class)->tag('messenger.message_handler');
        $services->set('logger', \Psr\Log\NullLogger::class);
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $suffix = self::VERSION_ID < 70300 ? 'xml' : 'php';
        $routes->import("@WebProfilerBundle/Resources/config/routing/profiler.$suffix")->prefix('/_profiler');
        $routes->import("@WebProfilerBundle/Resources/config/routing/wdt.$suffix")->prefix('/_wdt');
        $routes->add('news', '/news/{id}')->controller([SymfonySite::class, 'news']);
        $routes->add('row', '/row/{id}')->controller([SymfonySite::class, 'row']);
        $routes->add('template', '/template')->controller([SymfonySite::class, 'template']);
    }
}

final class SymfonySite
{
    /** A page that greets its visitor, if there is one, and calls itself public. */
    #[Uses('news:{id}')]
    public function news(Request $request, string $id, TokenStorageInterface $tokens, MessageBusInterface $bus): Response
    {
        match ($request->query->get('do')) {
            'change' => changed('news', $id),
            'dispatch' => $bus->dispatch(new SymfonyMessage((int) $id)),
            default => null,
        };
        $name = $tokens->getToken()?->getUserIdentifier() ?: 'stranger';
        return (new Response("<html><body>Hello $name</body></html>"))->setPublic()->setMaxAge(60);
    }

    /** A file, which a POST writes. */
    #[Uses('rows:{id}')]
    public function row(Request $request, string $id): Response
    {
        $file = getenv('NOTES') . '/row-' . (int) $id;
        if ($request->isMethod('POST')) {
            file_put_contents($file, (string) $request->query->get('title'));
            changed('rows', $id);
        }
        return new Response('Row: ' . (is_file($file) ? file_get_contents($file) : 'none'));
    }

    public function template(Environment $twig): Response
    {
        return new Response($twig->render('page.html.twig'));
    }
}

final class SymfonyMessage
{
    public function __construct(public readonly int $id)
    {
    }
}

final class SymfonyHandler
{
    public function __invoke(SymfonyMessage $message): void
    {
        changed('news', $message->id);
        if ($message->id === 5) {
            throw new \DomainException('after the write');
        }
    }
}
